// The lists that open while a message is typed: of files after "@", and of prompts after "/".
import type { RefObject } from "react";
import { conversationQuery, queryClient } from "../../api/queries";
import { FileMention } from "./file-mention";
import { PromptMention } from "./prompt-mention";

interface MentionsProps {
  conversation: string;
  field: RefObject<HTMLTextAreaElement | null>;
}

export function Mentions({ conversation, field }: MentionsProps) {
  const project = queryClient.getQueryData(conversationQuery(conversation).queryKey)?.project_id ?? null;
  return (
    <>
      <FileMention conversation={conversation} project={project} field={field} />
      <PromptMention project={project} field={field} side="above" />
    </>
  );
}
