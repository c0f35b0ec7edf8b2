// Prompts: their lists in the settings and on the page of a project, and the dialog that writes one.
import { deferred } from "../../controls/deferred";

export const Prompts = deferred(() => import("./prompt-list").then((m) => m.PromptList));
export const ProjectPrompts = deferred(() => import("./project-prompts").then((m) => m.ProjectPrompts));
export const PromptDialog = deferred(() => import("./prompt-dialog").then((m) => m.PromptDialog), {
  onFailure: ({ onClose }) => onClose(),
});
