import { test } from "vitest";
import { FakeStreams } from "./stream.fake";
import { checkStreams } from "./stream.suite";
import { random, randomTurn } from "./turn.fake";

test("the stand-in of the streams responds as the service does", async () => {
  const streams = new FakeStreams();
  await checkStreams({
    fetch: (path, init) => streams.fetch(path, init),
    finish: async () => {
      const events = randomTurn(random(1));
      streams.append(events[0]!.turn_id, events);
      return events[0]!.turn_id;
    },
    report: async () => streams.report("conversation.changed"),
  });
});
