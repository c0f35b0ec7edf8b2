// A tool call: its name, progress and outcome. A failure is shown as a warning, because the answer continues.
import { Fragment } from "react";
import { Icon, type IconName } from "../controls/icon";
import type { ToolState } from "../generated/events";
import type { PartView } from "../turn/fold";
import { useLocalization } from "../messages/localization";
import type { MessageKey } from "../messages/catalog";
import { Code } from "./code";
import { Elapsed, formatDuration } from "./elapsed";
import { Disclosure } from "./disclosure";
import { Sources, sourcesOf } from "./sources";
import { errorText, outcomeWords } from "./tool-outcome";
import { summaryOf } from "./tool-summary";

interface StateStyle {
  message: MessageKey;
  icon: IconName;
  colour: string;
  /** Whether the call has not ended. */
  active: boolean;
}

const stateStyles: Record<ToolState, StateStyle> = {
  pending: { message: "transcript.tool.pending", icon: "clock", colour: "text-faint", active: true },
  awaiting_approval: {
    message: "transcript.tool.awaiting_approval",
    icon: "clock",
    colour: "text-warning",
    active: true,
  },
  running: { message: "transcript.tool.running", icon: "tool", colour: "text-accent animate-pulse", active: true },
  succeeded: { message: "transcript.tool.succeeded", icon: "check", colour: "text-success", active: false },
  failed: { message: "transcript.tool.failed", icon: "warning", colour: "text-warning", active: false },
  rejected: { message: "transcript.tool.rejected", icon: "close", colour: "text-faint", active: false },
  cancelled: { message: "transcript.tool.cancelled", icon: "close", colour: "text-faint", active: false },
  outcome_unknown: {
    message: "transcript.tool.outcome_unknown",
    icon: "warning",
    colour: "text-warning",
    active: false,
  },
};

/** A computed integer that a JavaScript number represents exactly is shown with the separators of the language. */
const exactInteger = /^-?\d{1,15}$/;

export function Tool({ part }: { part: PartView }) {
  const localization = useLocalization();
  const { t, intl } = localization;
  const style = stateStyles[part.state ?? "pending"] ?? stateStyles.pending;
  // An artifact is shown below the call that writes it.
  const isArtifact = part.kind === "artifact";
  const summary = summaryOf(part);
  const result = isArtifact ? null : shortText(part.output);
  const outcome = outcomeWords(part)
    .map((word) => t(word))
    .join(" · ");
  return (
    <Disclosure
      icon={
        <span className={style.colour}>
          <Icon name={style.icon} size={16} />
        </span>
      }
      label={
        <>
          <bdi className="shrink-0">{part.title ?? part.tool_name}</bdi>
          <span className="sr-only">{outcome === "" ? t(style.message) : outcome}</span>
          {/* If the line has no space for both, the arguments are cut off before the result. */}
          {summary !== "" && <bdi className="shrink-[99999] truncate font-mono text-xs text-faint">{summary}</bdi>}
          {result !== null && (
            <>
              <span className="inline-block shrink-0 text-faint rtl:-scale-x-100">→</span>
              <bdi className="max-w-[min(30rem,60vw)] truncate text-ink">
                {part.kind === "compute" && exactInteger.test(result) ? intl.formatNumber(Number(result)) : result}
              </bdi>
            </>
          )}
          <ToolProgress part={part} />
          {outcome !== "" && (
            <span aria-hidden="true" className="shrink-0 text-faint">
              {outcome}
            </span>
          )}
          {part.state === "failed" && part.error !== undefined && part.error.detail !== "" && (
            <bdi className="shrink-[9999] truncate text-faint">{part.error.detail}</bdi>
          )}
        </>
      }
      detail={
        part.state === "awaiting_approval" ? null : style.active ? (
          <Elapsed since={part.since} />
        ) : part.duration_ms === undefined || part.duration_ms < 100 ? null : (
          <span className="shrink-0 text-faint tabular-nums">
            {formatDuration(localization, part.duration_ms / 1000)}
          </span>
        )
      }
    >
      <ToolDetails part={part} />
    </Disclosure>
  );
}

/** The progress of a running tool. */
function ToolProgress({ part: { toolProgress: step } }: { part: PartView }) {
  const { intl } = useLocalization();
  if (step === undefined) return null;
  const { progress } = step;
  return (
    <span className="flex min-w-0 items-center gap-2 text-xs text-faint">
      <bdi className="truncate">{step.label}</bdi>
      {progress !== null && progress.total > 0 && (
        <>
          <progress
            value={progress.done}
            max={progress.total}
            aria-label={step.label}
            className="h-1 w-16 accent-accent"
          />
          <span className="tabular-nums">
            {intl.formatNumber(progress.done / progress.total, { style: "percent" })}
          </span>
        </>
      )}
    </span>
  );
}

/** Values are next to their labels, whatever their direction: bdi isolates a value but does not move it. */
function ToolDetails({ part }: { part: PartView }) {
  const { t } = useLocalization();
  return (
    <>
      {part.input !== undefined && (
        <>
          <p className="mt-1 text-xs text-faint">{t("transcript.tool.arguments")}</p>
          <Arguments input={part.input} />
        </>
      )}
      {part.error !== undefined && (
        <>
          <p className="text-xs text-faint">{t("transcript.tool.error")}</p>
          <p className="my-1 wrap-anywhere">
            <bdi>{errorText(part.error, part.approval, t)}</bdi>
          </p>
        </>
      )}
      {part.sources !== undefined && part.sources.length > 0 ? (
        <Sources list={sourcesOf(part.sources)} />
      ) : (
        part.output !== undefined &&
        part.output !== "" && (
          <>
            <p className="text-xs text-faint">{t("transcript.tool.result")}</p>
            <Value value={part.output} />
          </>
        )
      )}
      {part.state === "outcome_unknown" && <p className="my-1">{t("transcript.tool.outcome_unknown.hint")}</p>}
    </>
  );
}

/** The arguments of a call: a line for each one if all are short, otherwise as JSON. */
function Arguments({ input }: { input: unknown }) {
  const entries = input !== null && typeof input === "object" && !Array.isArray(input) ? Object.entries(input) : null;
  if (entries === null || entries.some(([, value]) => shortText(value) === null)) return <Value value={input} />;
  return (
    <dl className="my-1 grid grid-cols-[auto_1fr] gap-x-3 font-mono text-xs">
      {entries.map(([name, value]) => (
        <Fragment key={name}>
          <dt className="text-faint">{name}</dt>
          <dd className="wrap-anywhere">
            <bdi>{shortText(value)}</bdi>
          </dd>
        </Fragment>
      ))}
    </dl>
  );
}

/** An argument or a result: a short one as text, any other one as a code block. */
function Value({ value }: { value: unknown }) {
  const short = shortText(value);
  if (short !== null)
    return (
      <p className="my-1 font-mono text-xs wrap-anywhere">
        <bdi>{short}</bdi>
      </p>
    );
  const code = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return <Code code={code} language={/^\s*[[{]/.test(code) ? "json" : ""} streaming={false} />;
}

/** The longest value in characters that is shown without a code block. */
const maxShortText = 120;

/** Returns a value as text if it is one short line; otherwise null. */
function shortText(value: unknown): string | null {
  if (typeof value !== "string") return typeof value === "object" || value === undefined ? null : String(value);
  const text = value.trim();
  return text === "" || text.length > maxShortText || /\n|^[[{]/.test(text) ? null : text;
}
