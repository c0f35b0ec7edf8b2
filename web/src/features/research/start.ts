// Starts research tasks: each request is repeated with the same Idempotency-Key until the service responds.
import { api, body } from "../../api/client";
import { refetchInAllTabs } from "../../api/queries";
import { Refusal } from "../../api/problem";
import { untilAnswered } from "../../api/until-answered";
import { noteTask } from "../../turn/running-tasks";
import { chooseResearch, setStarting, useResearchMode, idle } from "./mode";
import { cacheTask } from "./queries";

/** Whether the outcome is unknown, so that the request is repeated with its key. */
const repeats = (refusal: Refusal): boolean =>
  refusal.code !== "source_unavailable" &&
  (refusal.outcomeUnknown || refusal.status === 401 || refusal.code === "idempotency_in_progress");

/**
 * Starts a task with the choice of a conversation. create creates the conversation, unless the service has it. Returns
 * whether the service has stored the task; if not, the choice has the reason.
 */
export async function startResearch(
  conversation_id: string,
  question: string,
  files: readonly string[],
  create: () => Promise<void>,
): Promise<boolean> {
  const choice = useResearchMode.getState().choices[conversation_id];
  if (choice === undefined || useResearchMode.getState().starting[conversation_id]?.sending === true) return false;
  const { depth, places, budget } = choice;
  const request = {
    question,
    depth,
    sources: [...places],
    ...(files.length === 0 ? {} : { file_ids: [...files] }),
    ...(Object.keys(budget).length === 0 ? {} : { budget }),
  };
  const text = JSON.stringify(request);
  const key = choice.unfinished?.request === text ? choice.unfinished.key : crypto.randomUUID();
  chooseResearch(conversation_id, { ...choice, unfinished: { request: text, key }, refused: undefined });
  setStarting(conversation_id, { ...idle, sending: true });
  try {
    const task = await untilAnswered(
      async () => {
        await create();
        return body(
          api.POST("/conversations/{conversation_id}/research-tasks", {
            params: { path: { conversation_id }, header: { "Idempotency-Key": key } },
            body: request,
          }),
        );
      },
      (retry) => setStarting(conversation_id, { retry }),
      repeats,
    );
    chooseResearch(conversation_id, null);
    noteTask(task.task_id, conversation_id, task.state);
    cacheTask(task);
    void refetchInAllTabs("conversations");
    return true;
  } catch (refusal) {
    // A refused request had no effect, so the key is unused.
    chooseResearch(conversation_id, { ...choice, unfinished: undefined, refused: question });
    setStarting(conversation_id, { ...idle, refusal: refusal as Refusal });
    return false;
  }
}
