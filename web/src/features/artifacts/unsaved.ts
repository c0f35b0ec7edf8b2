// What signing out has to know of the texts that the user is typing.
import { countUnsaved } from "./edits";
import { cachedContent } from "./queries";

export { discardEdits } from "./edits";

/** Returns the number of artifacts with a text in this tab that is not saved. */
export const countUnsavedArtifacts = (): number => countUnsaved(cachedContent);
