// A reasoning summary, in a folded line. While the model is thinking, the line shows the elapsed time.
import { Icon } from "../controls/icon";
import type { PartView } from "../turn/fold";
import { useLocalization } from "../messages/localization";
import { formatDuration, useElapsed } from "./elapsed";
import { Disclosure } from "./disclosure";
import { Markdown } from "./markdown";

export function Reasoning({ part }: { part: PartView }) {
  const localization = useLocalization();
  const { t } = localization;
  const open = part.open === true;
  const seconds = useElapsed(part.since, open);
  const label = open
    ? t("transcript.thinking")
    : seconds === null || seconds < 1
      ? t("transcript.thoughts")
      : t("transcript.thought_for", { time: formatDuration(localization, seconds) });
  return (
    <Disclosure
      icon={
        <span className={open ? "animate-pulse text-accent" : "text-faint"}>
          <Icon name="thought" size={16} />
        </span>
      }
      label={label}
      detail={
        open && seconds !== null && seconds >= 2 ? (
          <span aria-hidden="true" className="text-faint tabular-nums">
            {formatDuration(localization, seconds)}
          </span>
        ) : null
      }
    >
      <div
        tabIndex={0}
        role="group"
        aria-label={t("transcript.thoughts")}
        className="max-h-80 overflow-y-auto text-sm text-soft"
      >
        <Markdown text={part.text ?? ""} streaming={open} />
      </div>
    </Disclosure>
  );
}
