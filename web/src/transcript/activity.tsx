// The status line below an answer while no text arrives.
import type { TurnView } from "../turn/fold";
import { Elapsed } from "../parts/elapsed";
import { useLocalization } from "../messages/localization";
import type { MessageKey } from "../messages/catalog";

/** view null: no event of the turn has arrived yet. */
export function Activity({ view }: { view: TurnView | null }) {
  const { t } = useLocalization();
  const growing = view?.parts.some((part) => part.open && part.type !== "notice") === true;
  const message = messageOf(view);
  // A growing part or a tool with a running timer shows the progress by itself.
  if (growing && (message === "transcript.activity.waiting" || message === "transcript.activity.working")) return null;
  const label = view?.activity != null && message === "transcript.activity.working" ? view.activity.label : null;
  return (
    <p className="my-3 flex min-h-6 items-center gap-2.5 text-sm text-soft">
      <span aria-hidden="true" className="size-2 animate-pulse rounded-full bg-accent" />
      <span dir="auto">{label ?? t(message)}</span>
      <Elapsed since={view?.activity?.since ?? view?.startedAt ?? null} />
    </p>
  );
}

function messageOf(view: TurnView | null): MessageKey {
  if (view === null) return "transcript.activity.waiting";
  if (view.cancelRequested || view.state === "cancelling") return "transcript.activity.stopping";
  if (view.recovering || view.state === "recovering") return "transcript.activity.recovering";
  if (view.state === "queued") return "transcript.activity.queued";
  if (view.state === "requires_action") return "transcript.activity.requires_action";
  if (view.activity?.activity === "summarising") return "transcript.activity.summarising";
  if (view.activity?.activity === "applying_input") return "transcript.activity.applying_input";
  if (view.activity === null || view.activity.activity === "waiting_for_model") return "transcript.activity.waiting";
  return "transcript.activity.working";
}
