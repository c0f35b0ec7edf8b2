// The call of a tool: what it is, how far, how it ended. A failure is told and no drama: the answer goes on.
import { Icon, type IconName } from "../controls/icon";
import type { ToolState } from "../generated/events";
import type { PartView } from "../turn/fold";
import { useSpeech } from "../words/speech";
import type { Word } from "../words/words";
import { Code } from "./code";
import { Elapsed, timeInWords } from "./elapsed";
import { Fold } from "./fold";

interface Look {
  word: Word;
  icon: IconName;
  colour: string;
  /** Whether it is still under way. */
  going: boolean;
}

const looks: Record<ToolState, Look> = {
  pending: { word: "transcript.tool.pending", icon: "clock", colour: "text-faint", going: true },
  awaiting_approval: { word: "transcript.tool.awaiting_approval", icon: "clock", colour: "text-amber", going: true },
  running: { word: "transcript.tool.running", icon: "tool", colour: "text-tide animate-pulse", going: true },
  succeeded: { word: "transcript.tool.succeeded", icon: "check", colour: "text-moss", going: false },
  failed: { word: "transcript.tool.failed", icon: "warning", colour: "text-amber", going: false },
  rejected: { word: "transcript.tool.rejected", icon: "close", colour: "text-faint", going: false },
  cancelled: { word: "transcript.tool.cancelled", icon: "close", colour: "text-faint", going: false },
  outcome_unknown: { word: "transcript.tool.outcome_unknown", icon: "warning", colour: "text-amber", going: false },
};

export function Tool({ part }: { part: PartView }) {
  const speech = useSpeech();
  const { say } = speech;
  const look = looks[part.state ?? "pending"] ?? looks.pending;
  const brief = inBrief(part.input);
  return (
    <Fold
      mark={<span className={look.colour}><Icon name={look.icon} size={16} /></span>}
      words={
        <>
          <bdi className="shrink-0">{part.title ?? part.tool_name}</bdi>
          <span className="sr-only">{say(look.word)}</span>
          {brief !== "" && <bdi className="truncate font-mono text-xs text-faint">{brief}</bdi>}
          <Step part={part} />
          {!look.going && part.state !== "succeeded" && <span aria-hidden="true" className="shrink-0 text-faint">{say(look.word)}</span>}
        </>
      }
      aside={look.going ? <Elapsed since={part.since} /> : part.duration_ms === undefined || part.duration_ms < 100 ? null : <span className="shrink-0 text-faint tabular-nums">{timeInWords(speech, part.duration_ms / 1000)}</span>}
    >
      <Inside part={part} />
    </Fold>
  );
}

/** How far a running tool is. */
function Step({ part: { step } }: { part: PartView }) {
  const { intl } = useSpeech();
  if (step === undefined) return null;
  const { progress } = step;
  return (
    <span className="flex min-w-0 items-center gap-2 text-xs text-faint">
      <bdi className="truncate">{step.label}</bdi>
      {progress !== null && progress.total > 0 && (
        <>
          <progress value={progress.done} max={progress.total} aria-label={step.label} className="h-1 w-16 accent-tide" />
          <span className="tabular-nums">{intl.formatNumber(progress.done / progress.total, { style: "percent" })}</span>
        </>
      )}
    </span>
  );
}

function Inside({ part }: { part: PartView }) {
  const { say } = useSpeech();
  return (
    <>
      {part.input !== undefined && (
        <>
          <p className="mt-1 text-xs text-faint">{say("transcript.tool.arguments")}</p>
          <Code code={JSON.stringify(part.input, null, 2)} language="json" open={false} />
        </>
      )}
      {part.error !== undefined && (
        <>
          <p className="text-xs text-faint">{say("transcript.tool.what_happened")}</p>
          <p dir="auto" className="my-1 wrap-anywhere">
            {part.error.detail === "" ? part.error.code : part.error.detail}
          </p>
        </>
      )}
      {part.output !== undefined && part.output !== "" && (
        <>
          <p className="text-xs text-faint">{say("transcript.tool.result")}</p>
          <Code code={part.output} language={/^\s*[[{]/.test(part.output) ? "json" : ""} open={false} />
        </>
      )}
      {part.state === "outcome_unknown" && <p className="my-1">{say("transcript.tool.outcome_unknown.why")}</p>}
    </>
  );
}

/** The arguments in a few words, for the line. */
function inBrief(input: unknown): string {
  if (input === null || typeof input !== "object") return input === undefined ? "" : String(input).slice(0, 120);
  const values = Object.values(input);
  if (values.length === 0) return "";
  return values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join(" · ").slice(0, 120);
}
