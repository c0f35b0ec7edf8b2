// Writing a message: the composer with its draft and its files, and the messages that wait below the transcript.
import { deferred } from "../../controls/deferred";

export { addFiles } from "./add-files";
export { Composer } from "./composer";
export { focusComposer, focusToWrite, useComposerRequests } from "./composer-requests";
export { addToDraft, startDrafts } from "./page-drafts";
export { endNewChat, newChat } from "./new-chat";
export { useStoredDraft } from "./use-chat";

// Loaded soon after the page: the network may be down when it is needed.
export const OutboxMessageNotice = deferred(
  () => import("./outbox-message-notice").then((m) => m.OutboxMessageNotice),
  { onFailure: () => {} },
);

export const UnsentText = deferred(() => import("./unsent-text").then((m) => m.UnsentText), { onFailure: () => {} });

// It is empty in most conversations.
export const PendingList = deferred(() => import("./pending-list").then((m) => m.PendingList), {
  onFailure: () => {},
});
