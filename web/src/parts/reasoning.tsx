// What the model thought before it answered: one line while it thinks, folded afterwards.
import { Icon } from "../controls/icon";
import type { PartView } from "../turn/fold";
import { useSpeech } from "../words/speech";
import { timeInWords, useElapsed } from "./elapsed";
import { Fold } from "./fold";
import { Markdown } from "./markdown";

export function Reasoning({ part }: { part: PartView }) {
  const speech = useSpeech();
  const { say } = speech;
  const open = part.open === true;
  const seconds = useElapsed(part.since, open);
  const words = open ? say("transcript.thinking") : seconds === null || seconds < 1 ? say("transcript.thoughts") : say("transcript.thought_for", { time: timeInWords(speech, seconds) });
  return (
    <Fold
      mark={<span className={open ? "animate-pulse text-tide" : "text-faint"}><Icon name="thought" size={16} /></span>}
      words={words}
      aside={open && seconds !== null && seconds >= 2 ? <span aria-hidden="true" className="text-faint tabular-nums">{timeInWords(speech, seconds)}</span> : null}
    >
      <div tabIndex={0} role="group" aria-label={say("transcript.thoughts")} className="max-h-80 overflow-y-auto text-sm text-soft">
        <Markdown text={part.text ?? ""} open={open} />
      </div>
    </Fold>
  );
}
