// Sharing a conversation by a link.
import { deferred } from "../../controls/deferred";
import { useSharing } from "./sharing";

export { ShareList } from "./share-list";
export { useSharing };

export const ShareDialog = deferred(() => import("./share-dialog").then((m) => m.ShareDialog), {
  onFailure: () => useSharing.setState({ conversation: null }),
});
