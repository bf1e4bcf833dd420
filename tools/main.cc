#include "tools/command_line.h"

int main(int argc, char** argv) { return optimus::tools::RunCommandLine(argc, argv); }
