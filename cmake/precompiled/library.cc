// Only so that there is a target that the precompiled header belongs to.
