// A tool call: its name, progress and outcome. A failure is shown as a warning, because the answer continues.
import { Icon, type IconName } from "../controls/icon";
import type { ToolState } from "../generated/events";
import type { PartView } from "../turn/fold";
import { useLocalization } from "../messages/localization";
import type { MessageKey } from "../messages/catalog";
import { Code } from "./code";
import { Elapsed, formatDuration } from "./elapsed";
import { Disclosure } from "./disclosure";

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

export function Tool({ part }: { part: PartView }) {
  const localization = useLocalization();
  const { t } = localization;
  const style = stateStyles[part.state ?? "pending"] ?? stateStyles.pending;
  const summary = summarizeInput(part.input);
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
          <span className="sr-only">{t(style.message)}</span>
          {summary !== "" && <bdi className="truncate font-mono text-xs text-faint">{summary}</bdi>}
          <ToolProgress part={part} />
          {!style.active && part.state !== "succeeded" && (
            <span aria-hidden="true" className="shrink-0 text-faint">
              {t(style.message)}
            </span>
          )}
        </>
      }
      detail={
        style.active ? (
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

function ToolDetails({ part }: { part: PartView }) {
  const { t } = useLocalization();
  return (
    <>
      {part.input !== undefined && (
        <>
          <p className="mt-1 text-xs text-faint">{t("transcript.tool.arguments")}</p>
          <Code code={JSON.stringify(part.input, null, 2)} language="json" streaming={false} />
        </>
      )}
      {part.error !== undefined && (
        <>
          <p className="text-xs text-faint">{t("transcript.tool.error")}</p>
          <p dir="auto" className="my-1 wrap-anywhere">
            {part.error.detail === "" ? part.error.code : part.error.detail}
          </p>
        </>
      )}
      {part.output !== undefined && part.output !== "" && (
        <>
          <p className="text-xs text-faint">{t("transcript.tool.result")}</p>
          <Code code={part.output} language={/^\s*[[{]/.test(part.output) ? "json" : ""} streaming={false} />
        </>
      )}
      {part.state === "outcome_unknown" && <p className="my-1">{t("transcript.tool.outcome_unknown.hint")}</p>}
    </>
  );
}

/** Returns the argument values as one short text for the folded line. */
function summarizeInput(input: unknown): string {
  if (input === null || typeof input !== "object") return input === undefined ? "" : String(input).slice(0, 120);
  const values = Object.values(input);
  if (values.length === 0) return "";
  return values
    .map((value) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join(" · ")
    .slice(0, 120);
}
