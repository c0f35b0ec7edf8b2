// What changes one conversation. It is loaded, as one file, when the list or a menu of conversations is first used.
import { deferred } from "../../controls/deferred";
import { cancelDeletions } from "./deletion";
import { editTitle } from "./editing";

export const DeletionDialogs = deferred(() => import("./deletion-dialogs").then((m) => m.DeletionDialogs), {
  onFailure: cancelDeletions,
});

export const PlacementItems = deferred(() => import("./placement-items").then((m) => m.PlacementItems), {
  onFailure: () => {},
});

export const TitleEditor = deferred(() => import("./rename").then((m) => m.TitleEditor), {
  Placeholder: ({ conversation, className = "" }) => (
    <span dir="auto" className={`min-w-0 grow truncate px-2 text-sm ${className}`}>
      {conversation.title}
    </span>
  ),
  onFailure: () => editTitle(null, "row"),
});
