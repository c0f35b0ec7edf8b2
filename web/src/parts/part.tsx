// Renders a part of a message by its kind. A kind that this version of the app does not know is left out.
import { memo } from "react";
import { Icon } from "../controls/icon";
import type { MessageKey } from "../messages/catalog";
import type { PartView } from "../turn/fold";
import { useLocalization } from "../messages/localization";
import type { Citation } from "../generated/events";
import { ArtifactCard } from "./artifact";
import { CitationsContext } from "./cited";
import { Code } from "./code";
import { Markdown } from "./markdown";
import { Reasoning } from "./reasoning";
import { Sources } from "./sources";
import { Tool } from "./tool";

interface PartProps {
  part: PartView;
  /** Whether a notice below this part says why it is cut off. */
  endShown: boolean;
}

const none: readonly Citation[] = [];

export const Part = memo(function Part({ part, endShown }: PartProps) {
  const { t } = useLocalization();
  const open = part.open === true;
  switch (part.type) {
    case "text":
      return (
        <div className="my-3">
          <CitationsContext value={part.citations ?? none}>
            <Markdown text={part.text ?? ""} streaming={open} />
          </CitationsContext>
          {part.truncated === true && !endShown && (
            <p className="mt-2 text-sm text-faint">{t("transcript.part_cut")}</p>
          )}
          {part.citations !== undefined && <Sources list={part.citations} />}
        </div>
      );
    case "code":
      return <Code code={part.code ?? ""} language={part.language ?? ""} filename={part.filename} streaming={open} />;
    case "reasoning_summary":
      return <Reasoning part={part} />;
    case "tool":
      return <Tool part={part} />;
    case "artifact":
      return <ArtifactCard part={part} />;
    case "notice":
      return <Notice part={part} />;
    case "citation_list":
      return part.citations === undefined ? null : <Sources list={part.citations} />;
    default:
      return null;
  }
});

/** The texts of notices whose own text is in English only. */
const noticeMessages: Readonly<Record<string, MessageKey>> = {
  context_trimmed: "transcript.context_trimmed",
  refused: "transcript.refused",
  empty_answer: "transcript.empty_answer",
};

/**
 * A notice. A steering input is shown at the position where it was applied; any other notice is a muted line.
 */
function Notice({ part }: { part: PartView }) {
  const { t } = useLocalization();
  if (part.kind === "steering") {
    return (
      <div className="my-4 flex flex-col items-end">
        <span className="mb-1 flex items-center gap-1 text-xs text-faint">
          <Icon name="steer" size={14} mirrored />
          {t("transcript.steered")}
        </span>
        <p dir="auto" className="max-w-[85%] rounded-lg bg-accent-wash px-4 py-2 wrap-anywhere whitespace-pre-wrap">
          {part.text}
        </p>
      </div>
    );
  }
  const message = noticeMessages[part.kind ?? ""];
  return (
    <p dir="auto" className="my-3 text-sm text-faint">
      {message === undefined ? part.text : t(message)}
    </p>
  );
}
