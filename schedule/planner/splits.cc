#include "schedule/planner/splits.h"
