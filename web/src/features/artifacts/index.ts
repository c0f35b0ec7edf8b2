// The panel with the artifacts of a conversation: documents, code, pages, pictures, tables and diagrams in versions.
import { deferred } from "../../controls/deferred";

export { useOpenedArtifact } from "./opened";

/** Loads what knows the texts that are not saved; null: it cannot be loaded. */
export const loadUnsaved = () => import("./unsaved").catch(() => null);

/** If this tab stored texts before a reload, loads them, so that signing out in another tab counts them and discards them. */
export function startEdits(): void {
  try {
    if (!["{}", null].includes(sessionStorage.getItem("turnstone-artifact-edits")))
      void loadUnsaved().then((unsaved) => unsaved?.startUnsaved());
  } catch {
    // The storage is not available, so nothing is stored.
  }
}

// Loaded when the panel is first opened.
export const ArtifactPanel = deferred(() => import("./artifact-panel").then((m) => m.ArtifactPanel), {
  onFailure: ({ onOpen }) => onOpen(undefined),
});
export const ArtifactsButton = deferred(() => import("./artifacts-button").then((m) => m.ArtifactsButton), {
  onFailure: () => {},
});
