// The list of prompts that opens when "/" is typed at the beginning of a line. The text of the chosen one takes the place of the word,
// after a dialog has asked for the values of its variables.
import { useQuery } from "@tanstack/react-query";
import { useState, type RefObject } from "react";
import { pickedPromptsQuery, type Prompt } from "../../api/prompts";
import { useSearchedText } from "../../controls/search-field";
import { useLocalization, useMessages } from "../../messages/localization";
import { mentioningMessages } from "../../messages/mentioning";
import { promptAt, type Mention } from "./mention";
import { MentionList } from "./mention-list";
import { fillIn, variablesOf } from "./prompt-variables";
import { useMention } from "./use-mention";
import { VariablesDialog } from "./variables-dialog";

interface PromptMentionProps {
  /** The project whose prompts come first. */
  project: string | null;
  field: RefObject<HTMLTextAreaElement | null>;
  side: "above" | "below";
}

export function PromptMention({ project, field, side }: PromptMentionProps) {
  const { t, intl } = useLocalization();
  const text = useMessages(mentioningMessages);
  const { mention, close } = useMention(field, promptAt);
  const found = useFoundPrompts(project, mention?.query ?? null);
  const [asking, setAsking] = useState<{ prompt: Prompt; word: Mention } | null>(null);
  const known = () => ({
    date: intl.formatDate(Date.now(), { dateStyle: "long" }),
    time: intl.formatTime(Date.now(), { timeStyle: "short" }),
  });
  const choose = (prompt: Prompt, word: Mention) => {
    if (variablesOf(prompt.text, known()).length > 0) setAsking({ prompt, word });
    else insert(field.current!, word, fillIn(prompt.text, known())); // its word is open
  };
  // A path, or a word that no prompt begins with, stays as it is typed. Without any prompt, the list says where to add one.
  const open = found.prompts.length > 0 || found.loading || mention?.query === "";
  return (
    <>
      <MentionList
        field={field}
        side={side}
        mention={open ? mention : null}
        close={close}
        items={found.prompts}
        idOf={({ prompt_id }) => prompt_id}
        loading={found.loading}
        label={text("mentioning.prompts")}
        none={
          found.loading
            ? t("transcript.file.loading")
            : text(found.failed ? "mentioning.prompts.failed" : "mentioning.prompts.none")
        }
        count={text("mentioning.prompts.count", { count: found.prompts.length })}
        onChoose={choose}
      >
        {(prompt) => (
          <>
            <span className="flex max-w-1/2 shrink-0 font-medium">
              <bdi className="truncate">/{prompt.name}</bdi>
            </span>
            <span dir="auto" className="min-w-0 grow truncate text-as-parent text-soft">
              {prompt.description || prompt.text.slice(0, 200)}
            </span>
            {prompt.project_id !== null && (
              <span className="shrink-0 text-xs text-soft">{text("mentioning.project")}</span>
            )}
          </>
        )}
      </MentionList>
      {asking !== null && (
        <VariablesDialog
          prompt={asking.prompt}
          known={known()}
          onFilled={(filled) => field.current !== null && insert(field.current, asking.word, filled)}
          onClose={() => setAsking(null)}
          returnTo={() => field.current}
        />
      )}
    </>
  );
}

/** Replaces the word of a prompt by a text, as typing does: it can be undone. */
function insert(area: HTMLTextAreaElement, { start, end, query }: Mention, text: string): void {
  area.focus();
  // Another device may have changed the draft while the dialog was open.
  if (/[/／]/.test(area.value.charAt(start)) && area.value.slice(start + 1, end) === query)
    area.setSelectionRange(start, end);
  if (document.execCommand("insertText", false, text)) return;
  area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
  area.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "insertText" }));
}

const noPrompts: readonly Prompt[] = [];

/** The prompts that a text finds, those of the project first; null: none are needed. */
function useFoundPrompts(project: string | null, query: string | null) {
  const searched = useSearchedText(query ?? "");
  const { data, isError, isPending, isPlaceholderData, fetchStatus } = useQuery({
    ...pickedPromptsQuery(project, searched),
    enabled: query !== null,
  });
  // Until the prompts for the last key have arrived, those that match it are shown: Enter must not choose another one.
  const late = isPlaceholderData || searched !== query;
  const failed = isError || fetchStatus === "paused";
  return {
    prompts: (query === null ? noPrompts : (data ?? noPrompts)).filter((one) => !late || hasWord(one, query ?? "")),
    // If the prompts for the keys before are none, those for the last one seldom are some.
    loading: !failed && (isPending || (late && (data?.length !== 0 || query === ""))),
    failed,
  };
}

const wordsOf = (text: string) => ` ${text}`.toLowerCase().replace(/[-_./]/g, " ");

/** Whether a word of the name or of the description begins with a text, as the service decides it. */
const hasWord = ({ name, description }: Prompt, query: string) =>
  wordsOf(`${name} ${description}`).includes(wordsOf(query));
