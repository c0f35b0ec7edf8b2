// The service passes the suites of the stand-ins with which the units of the app are tested.
import { test } from "vitest";
import { newIdentifier } from "../src/api/identifier";
import { checkDelivery } from "../src/api/delivery.suite";
import { checkStreams } from "../src/turn/stream.suite";
import { fast, pausedAnswer } from "./conversation-page";
import { Account, withBrowser } from "./harness";

withBrowser();

test("the service treats deliveries as their stand-in does", async () => {
  const account = await Account.register();
  let release = async () => {};
  await checkDelivery({
    send: (path, init) => account.send(path, init),
    begin: async (conversation) => {
      const answer = await pausedAnswer();
      release = answer.release;
      return (await account.startTurn(answer.text, { conversation_id: conversation })).turn;
    },
    newID: () => newIdentifier("conv"),
  });
  await release();
});

test("the service streams events as the stand-in of the followers does", async () => {
  const account = await Account.register();
  await checkStreams({
    fetch: (path, init) => account.send(path, init ?? {}),
    finish: async () => {
      const response = await account.request("POST", "/chat", { input: [{ type: "text", text: fast(5) }] });
      await response.text();
      return response.headers.get("X-Turn-Id")!;
    },
    report: async () => void (await account.request("POST", "/conversations", { title: "Tides" })),
  });
});
