// Starts everything that runs for as long as the page is open. No module starts anything when it is imported.
import { startOutbox } from "./api/outbox";
import { startQueries } from "./api/queries";
import { startToolChoices } from "./api/tool-choice";
import { onSignIn, startSessionState } from "./api/session-state";
import { startEdits } from "./features/artifacts";
import { startDrafts } from "./features/composer";
import { startDevice } from "./controls/device";
import { startInputModality } from "./controls/input-modality";
import { onLater, startLater } from "./controls/later";
import { startProviderFailure } from "./features/sign-in";
import { startAccountFeed } from "./turn/account-feed";
import { followAgain } from "./turn/live-store";

/** Loads the tooltips when the user first points at something or moves the focus. */
function startTooltips(): void {
  const load = () => {
    for (const type of events) document.removeEventListener(type, load);
    void import("./controls/tooltip").then(
      (tooltip) => tooltip.startTooltips(),
      () => {}, // loading failed: the app works without tooltips
    );
  };
  const events = ["pointermove", "keydown"] as const;
  for (const type of events) document.addEventListener(type, load);
}

/** A notification of the worker opens its page in any tab, also in one that did not show it. */
function openNotified({ data }: MessageEvent<{ open: string }>): void {
  history.pushState(null, "", data.open); // the router follows
}

/** Registers the service worker once the first page is shown, so that it delays nothing. */
function startOffline(): void {
  if (!("serviceWorker" in navigator)) return; // for example a private window
  const register = () => import("./api/offline").then((offline) => offline.register()).catch(() => {}); // the app works without it
  navigator.serviceWorker.addEventListener("message", openNotified);
  onLater(() => void register());
}

export function start(): void {
  startLater();
  startTooltips();
  startDevice();
  startInputModality();
  startProviderFailure();
  startSessionState();
  onSignIn(followAgain);
  startQueries();
  startAccountFeed();
  startToolChoices();
  startDrafts();
  startEdits();
  startOutbox();
  startOffline();
}
