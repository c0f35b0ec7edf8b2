// Search: the command palette.
import { deferred } from "../../controls/deferred";

export const Palette = deferred(() => import("./palette").then((m) => m.Palette), {
  onFailure: ({ onClose }) => onClose(),
});
