// What signing out has to know of the texts that the user is typing, in this tab and in others.
import { onSignOut } from "../../api/session-state";
import { TabLocks } from "../../api/tab-locks";
import { discardEdits, unsavedArtifacts, useEdits } from "./edits";
import { cachedContent } from "./queries";

let locks: TabLocks | null = null;

/** Starts to show the other tabs of which artifacts this one has a text that is not saved, and to discard the texts at a sign-out. */
export function startUnsaved(): TabLocks {
  if (locks !== null) return locks;
  const started = (locks = new TabLocks("edit"));
  const update = () => started.hold(unsavedArtifacts(cachedContent));
  update();
  useEdits.subscribe(update);
  onSignOut(discardEdits);
  return started;
}

/** Returns the number of artifacts with a text that is not saved, in this tab or in another one. */
export async function countUnsavedArtifacts(): Promise<number> {
  const others = await startUnsaved().ofOtherTabs();
  return new Set([...unsavedArtifacts(cachedContent), ...others]).size;
}
