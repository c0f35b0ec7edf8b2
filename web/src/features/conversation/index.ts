// The page of a conversation with its transcript, and the dialog with its branches.
import { deferred } from "../../controls/deferred";
import { useBranching } from "./branching";

export { ConversationRoute } from "./conversation";
export { useBranching };

export const BranchesDialog = deferred(() => import("./branches-dialog").then((m) => m.BranchesDialog), {
  onFailure: () => useBranching.setState({ conversation: null }),
});
