// Starts everything that runs for as long as the page is open. No module starts anything when it is imported.
import { startOutbox } from "./api/outbox";
import { startPolling } from "./api/polling";
import { startQueries } from "./api/queries";
import { onSignIn, startSessionState } from "./api/session-state";
import { startDrafts } from "./composer/drafts";
import { startDevice } from "./controls/device";
import { startInputModality } from "./controls/input-modality";
import { startProviderFailure } from "./pages/provider-failure";
import { followAgain } from "./turn/live";

export function start(): void {
  startDevice();
  startInputModality();
  startProviderFailure();
  startSessionState();
  onSignIn(followAgain);
  startQueries();
  startDrafts();
  startOutbox();
  startPolling();
}
