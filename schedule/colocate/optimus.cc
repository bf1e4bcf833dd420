#include "schedule/colocate/optimus.h"
