// One line below an answer that is not yet, or not now, saying anything.
import type { TurnView } from "../turn/fold";
import { Elapsed } from "../parts/elapsed";
import { useSpeech } from "../words/speech";
import type { Word } from "../words/words";

/** view null: nothing was heard of the turn yet. */
export function Activity({ view }: { view: TurnView | null }) {
  const { say } = useSpeech();
  const speaks = view?.parts.some((part) => part.open && part.type !== "notice") === true;
  const word = wordOf(view);
  // A part that grows, or a tool that counts, tells enough by itself.
  if (speaks && (word === "transcript.activity.waiting" || word === "transcript.activity.working")) return null;
  const other = view?.activity != null && word === "transcript.activity.working" ? view.activity.label : null;
  return (
    <p className="my-3 flex min-h-6 items-center gap-2.5 text-sm text-soft">
      <span aria-hidden="true" className="size-2 animate-pulse rounded-full bg-tide" />
      <span dir="auto">{other ?? say(word)}</span>
      <Elapsed since={view?.activity?.since ?? view?.startedAt ?? null} />
    </p>
  );
}

function wordOf(view: TurnView | null): Word {
  if (view === null) return "transcript.activity.waiting";
  if (view.cancelRequested || view.state === "cancelling") return "transcript.activity.stopping";
  if (view.recovering || view.state === "recovering") return "transcript.activity.recovering";
  if (view.state === "queued") return "transcript.activity.queued";
  if (view.state === "requires_action") return "transcript.activity.requires_action";
  if (view.activity?.activity === "summarising") return "transcript.activity.summarising";
  if (view.activity === null || view.activity.activity === "waiting_for_model") return "transcript.activity.waiting";
  return "transcript.activity.working";
}
