// The list of conversations, and what can be done with them: rename, pin, move, archive and delete.
import { deferred } from "../../controls/deferred";
import { useDeletion } from "./deletion";
import { useMoving } from "./moving";
import { closeSignOut, isUnsent, useUnsent } from "./sign-out";

export { confirmDeletion, useSendWhenLeft } from "./deletion";
export { SelectionToolbar } from "./conversation-list";
export { useListedParts } from "./listed-parts";
export { archive, restore, setPinned } from "./placement";
export { editTitle, useEditing } from "./editing";
export { DeletionDialogs, PlacementItems, TitleEditor } from "./organizing";
export { setSelectable, startSelecting, stopSelecting, useSelecting } from "./selecting";
export { SelectionRow } from "./selection-row";
export { Sidebar } from "./sidebar";
export { useSignOut } from "./sign-out";
export { useDeletion, useMoving, isUnsent, useUnsent };

// The drawer and the dialogs are loaded when they are first opened.
export const Drawer = deferred(() => import("./drawer").then((m) => m.Drawer), { onFailure: ({ onHide }) => onHide() });
export const ApprovalNotifications = deferred(
  () => import("./approval-notifications").then((m) => m.ApprovalNotifications),
  { onFailure: () => {} },
);
export const AnswerNotifications = deferred(() => import("./answer-notifications").then((m) => m.AnswerNotifications), {
  onFailure: () => {},
});
export const MoveDialog = deferred(() => import("./move-dialog").then((m) => m.MoveDialog), {
  onFailure: () => useMoving.setState({ conversations: [] }),
});
export const SignOutDialog = deferred(() => import("./sign-out-dialog").then((m) => m.SignOutDialog), {
  onFailure: closeSignOut,
});
