// A plugin of clang for check_tidy.sh: checks visit the declarations of this project's files only.
//
// Why: clang-tidy 14 matches every check against every declaration a source includes, and then
// drops what it found in system headers. Nine tenths of the declarations are of Abseil, GoogleTest
// and the standard library, so that this took three quarters of the time. What is found stays the
// same: it was compared with all checks that clang-tidy has, not only ours.
//
// clang::ASTContext::setTraversalScope is what clangd does to the same end.
#include <memory>
#include <string>
#include <vector>

#include "clang/AST/ASTConsumer.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclGroup.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendPluginRegistry.h"

namespace {

class OwnCodeConsumer : public clang::ASTConsumer {
 public:
  explicit OwnCodeConsumer(const clang::SourceManager& sources) : sources_(sources) {}

  // As they are parsed: what comes out of a precompiled header is not even read.
  bool HandleTopLevelDecl(clang::DeclGroupRef group) override {
    for (clang::Decl* declaration : group) {
      // Where a macro is used, not where it is defined: TEST() stands in our files.
      const clang::SourceLocation place = sources_.getExpansionLoc(declaration->getLocation());
      if (place.isValid() && !sources_.isInSystemHeader(place)) own_.push_back(declaration);
    }
    return true;
  }
  void HandleTranslationUnit(clang::ASTContext& context) override {
    context.setTraversalScope(own_);
  }

 private:
  const clang::SourceManager& sources_;
  std::vector<clang::Decl*> own_;
};

class OwnCodeAction : public clang::PluginASTAction {
 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                        llvm::StringRef) override {
    return std::make_unique<OwnCodeConsumer>(compiler.getSourceManager());
  }
  bool ParseArgs(const clang::CompilerInstance&, const std::vector<std::string>&) override {
    return true;
  }
  // Before clang-tidy's own consumer, which reads the scope.
  ActionType getActionType() override { return AddBeforeMainAction; }
};

const clang::FrontendPluginRegistry::Add<OwnCodeAction> kRegistered(
    "own-code", "checks visit the declarations of this project's files only");

}  // namespace
