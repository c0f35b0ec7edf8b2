// The lists that open while a message is typed: of files after "@", and of prompts after "/".
import type { RefObject } from "react";
import { conversationQuery, queryClient } from "../../api/queries";
import { FileMention } from "./file-mention";
import { PromptMention } from "./prompt-mention";

interface MentionsProps {
  conversation: string;
  /** The project on whose page the message is written. Its field is at the top, so the lists open below it. */
  page: string | undefined;
  field: RefObject<HTMLTextAreaElement | null>;
}

export function Mentions({ conversation, page, field }: MentionsProps) {
  const project = page ?? queryClient.getQueryData(conversationQuery(conversation).queryKey)?.project_id ?? null;
  const side = page === undefined ? "above" : "below";
  return (
    <>
      <FileMention conversation={conversation} project={project} field={field} side={side} />
      <PromptMention project={project} field={field} side={side} />
    </>
  );
}
