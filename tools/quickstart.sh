#!/usr/bin/env bash
# From a bare Debian 12 to the main job: installs the missing packages, builds build/release/bin/optimus
# and simulates one training step of ViT-22B + GPT-175B on 3072 H100s by Megatron-LM, by Megatron-LM
# balanced, and with the encoder planned into the LLM's bubbles (Optimus).
set -euo pipefail
cd "$(dirname "$0")/.."

echo "== 1/3 Debian packages"
tools/install_dependencies.sh
echo "== 2/3 Building build/release/bin/optimus"
cmake --preset release >/dev/null
cmake --build --preset release --target optimus optimus_bench
echo "== 3/3 build/release/bin/optimus simulate strong_3072: Megatron-LM, balanced, Optimus"
build/release/bin/optimus simulate examples/paper/strong_3072_megatron.textproto \
  examples/paper/strong_3072_balanced.textproto examples/paper/strong_3072_optimus.textproto
