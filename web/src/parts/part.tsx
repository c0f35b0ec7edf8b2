// The parts of a message, each by its kind. A kind that this version does not know is left out.
import { memo } from "react";
import { Icon } from "../controls/icon";
import type { Citation } from "../generated/events";
import type { PartView } from "../turn/fold";
import { useSpeech } from "../words/speech";
import { followable } from "./address";
import { Code } from "./code";
import { Markdown } from "./markdown";
import { Reasoning } from "./reasoning";
import { Tool } from "./tool";

export const Part = memo(function Part({ part }: { part: PartView }) {
  const { say } = useSpeech();
  const open = part.open === true;
  switch (part.type) {
    case "text":
      return (
        <div className="my-3">
          <Markdown text={part.text ?? ""} open={open} />
          {part.truncated === true && <p className="mt-2 text-sm text-faint">{say("transcript.part_cut")}</p>}
          {part.citations !== undefined && <Sources list={part.citations} />}
        </div>
      );
    case "code":
      return <Code code={part.code ?? ""} language={part.language ?? ""} filename={part.filename} open={open} />;
    case "reasoning_summary":
      return <Reasoning part={part} />;
    case "tool":
      return <Tool part={part} />;
    case "notice":
      return <Note part={part} />;
    case "citation_list":
      return part.citations === undefined ? null : <Sources list={part.citations} />;
    default:
      return null;
  }
});

/** What the user said while the answer was written stands where it was taken in; other notices are a quiet line. */
function Note({ part }: { part: PartView }) {
  const { say } = useSpeech();
  if (part.kind === "steering") {
    return (
      <div className="my-4 flex flex-col items-end">
        <span className="mb-1 flex items-center gap-1 text-xs text-faint">
          <Icon name="steer" size={14} mirrored />
          {say("transcript.steered")}
        </span>
        <p dir="auto" className="max-w-[85%] rounded-lg bg-tide-wash px-4 py-2 wrap-anywhere whitespace-pre-wrap">
          {part.text}
        </p>
      </div>
    );
  }
  return (
    <p dir="auto" className="my-3 text-sm text-faint">
      {part.kind === "context_trimmed" ? say("transcript.context_trimmed") : part.text}
    </p>
  );
}

function Sources({ list }: { list: readonly Citation[] }) {
  const { say } = useSpeech();
  if (list.length === 0) return null;
  return (
    <div className="mt-3 text-sm">
      <p className="text-xs text-faint">{say("transcript.sources")}</p>
      <ol className="mt-1 flex flex-wrap gap-x-4 gap-y-1">
        {list.map(({ index, title, url }) => {
          const address = followable(url);
          return (
            <li key={index} className="max-w-full truncate">
              <span className="text-faint tabular-nums">{index} </span>
              {address === undefined ? (
                <bdi>{title}</bdi>
              ) : (
                <a href={address} title={address} target="_blank" rel="noopener noreferrer nofollow" className="text-tide underline decoration-1 underline-offset-2">
                  <bdi>{title}</bdi>
                </a>
              )}
            </li>
          );
        })}
      </ol>
    </div>
  );
}
