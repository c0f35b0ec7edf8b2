// The composer of the page of a project. It is that of a new chat; its conversation is in the project from its creation on.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Refusal } from "../../api/client";
import { conversationQuery } from "../../api/queries";
import { Composer, endNewChat, newChat, useStoredDraft } from "../composer";

export function ProjectComposer({ project }: { project: string }) {
  const [id, setID] = useState(() => newChat(project).id);
  const stored = useStoredDraft(id, project);
  const { data: page, error } = useQuery({ ...conversationQuery(id), enabled: stored });
  // It was deleted, moved or used elsewhere: the next message begins another conversation.
  const gone = error instanceof Refusal && error.status === 404;
  const used = page !== undefined && (page.message_count > 0 || page.project_id !== project);
  useEffect(() => {
    if (!gone && !used) return;
    endNewChat(id, project);
    setID(newChat(project).id);
  }, [gone, used, id, project]);
  return (
    <Composer
      key={id}
      conversationID={stored ? id : null}
      page={stored ? page : undefined}
      live={null}
      deleted={false}
      project={project}
    />
  );
}
