// The status line below an answer while no text arrives. It has the height of the actions, which replace it at the end,
// so that nothing moves.
import { useEffect, useState } from "react";
import { Icon } from "../../controls/icon";
import { deferred } from "../../controls/deferred";
import { useDevice } from "../../controls/device";
import type { MessageKey } from "../../messages/catalog";
import { useLocalization } from "../../messages/localization";
import { announce } from "../../parts/announcements";
import { Elapsed } from "../../parts/elapsed";
import { awaitsApproval, type PartView, type TurnView } from "../../turn/fold";
import type { LiveTurn } from "../../turn/live";

/** The time without an event, in milliseconds, after which the line says that the model is still working. */
const stallDelay = 8_000;

const NotifyOffer = deferred(() => import("./notify-offer").then((m) => m.NotifyOffer), { onFailure: () => {} });

/** Reports whether the browser would ask the user for the permission of notifications. */
const canAsk = () => "Notification" in window && Notification.permission === "default";

/** turn undefined: no event of the turn has arrived yet. */
export function Activity({ turn }: { turn: LiveTurn | undefined }) {
  const { t } = useLocalization();
  const view = turn?.view ?? null;
  const growing = view?.parts.findLast((part) => part.open && part.type !== "notice");
  const message = messageOf(view);
  const stalled = useStalled(turn, growing);
  // It waits for the user, not for the service: no sign of work, and no time.
  const waits = message === "transcript.activity.requires_action";
  // A growing part or a tool with a running timer shows the progress by itself.
  const quiet =
    view?.finished != null ||
    (growing !== undefined &&
      (message === "transcript.activity.waiting" || message === "transcript.activity.working") &&
      !stalled);
  const label = view?.activity != null && message === "transcript.activity.working" ? view.activity.label : null;
  const offers = useDevice(({ notify, offerNotifications }) => !notify && offerNotifications) && canAsk();
  return (
    <p className="mt-1 flex min-h-8 flex-wrap items-center gap-2.5 text-sm text-soft">
      {!quiet && (
        <>
          {waits ? (
            <span className="text-warning">
              <Icon name="clock" size={16} />
            </span>
          ) : (
            !stalled && <span aria-hidden="true" className="size-2 animate-pulse rounded-full bg-accent" />
          )}
          <span dir="auto">{stalled ? t("transcript.activity.stalled") : (label ?? t(message))}</span>
          {!stalled && !waits && <Elapsed since={view?.activity?.since ?? view?.startedAt ?? null} />}
        </>
      )}
      {offers && view?.startedAt != null && view.finished === null && <NotifyOffer since={view.startedAt} />}
    </p>
  );
}

/** Reports whether a text of the model has not grown for a while, although the turn continues, and announces it. */
function useStalled(turn: LiveTurn | undefined, growing: PartView | undefined): boolean {
  const { t } = useLocalization();
  const [stalledAt, setStalledAt] = useState<number | null>(null);
  const last = turn?.view.last ?? null;
  const text = growing !== undefined && growing.type !== "tool" && turn?.connection === "open";
  useEffect(() => {
    if (!text) return;
    const timer = setTimeout(() => setStalledAt(last), stallDelay);
    return () => clearTimeout(timer);
  }, [last, text]);
  const stalled = text && stalledAt === last;
  useEffect(() => {
    if (stalled && useDevice.getState().announce !== "off") announce(t("transcript.activity.stalled"));
  }, [stalled, t]);
  return stalled;
}

function messageOf(view: TurnView | null): MessageKey {
  if (view === null) return "transcript.activity.waiting";
  if (view.cancelRequested || view.state === "cancelling") return "transcript.activity.stopping";
  if (view.recovering || view.state === "recovering") return "transcript.activity.recovering";
  if (view.state === "queued") return "transcript.activity.queued";
  if (awaitsApproval(view)) return "transcript.activity.requires_action";
  if (view.activity?.activity === "summarising") return "transcript.activity.summarising";
  if (view.activity?.activity === "applying_input") return "transcript.activity.applying_input";
  if (view.activity === null || view.activity.activity === "waiting_for_model") return "transcript.activity.waiting";
  return "transcript.activity.working";
}
