// The panel with the artifacts of a conversation: documents, code, pages, pictures, tables and diagrams in versions.
import { deferred } from "../../controls/deferred";
import { countUnsaved } from "./edits";
import { cachedContent } from "./queries";

export { discardEdits } from "./edits";
export { useOpenedArtifact } from "./opened";

/** Returns the number of artifacts with a text in this tab that is not saved. */
export const countUnsavedArtifacts = (): number => countUnsaved(cachedContent);

// Loaded when the panel is first opened.
export const ArtifactPanel = deferred(() => import("./artifact-panel").then((m) => m.ArtifactPanel), {
  onFailure: ({ onOpen }) => onOpen(undefined),
});
export const ArtifactsButton = deferred(() => import("./artifacts-button").then((m) => m.ArtifactsButton), {
  onFailure: () => {},
});
