// Sends requests to a live turn, each until the service responds. All of them may be repeated: the service accepts each once.
import { Refusal, send, type Schemas } from "./client";
import { readRefusal } from "./problem";
import { untilAnswered } from "./until-answered";

/** A browser refuses larger requests that outlast their page: 64 KiB, of characters of up to 3 bytes. */
const longestKeptAlive = 20_000;

/**
 * Sends a request until the service accepts or refuses it. Returns the refusal; null: accepted. onFailure is called after
 * an attempt that is repeated: there was no response, or the session or a limit did not permit the request.
 */
export async function postSteering(
  request: Schemas["SteeringRequest"],
  onFailure: (refusal: Refusal) => void,
): Promise<Refusal | null> {
  const body = JSON.stringify(request);
  try {
    await untilAnswered(async () => {
      const init = {
        method: "POST",
        keepalive: body.length <= longestKeptAlive,
        headers: { "Content-Type": "application/json" },
        body,
        signal: AbortSignal.timeout(10_000),
      };
      const response = await send(new Request(new URL("/chat/steering", location.origin), init));
      if (!response.ok) throw await readRefusal(response);
    }, onFailure);
    return null;
  } catch (refusal) {
    return refusal as Refusal;
  }
}
