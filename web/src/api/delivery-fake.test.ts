import { test } from "vitest";
import { FakeService } from "./delivery.fake";
import { checkDelivery } from "./delivery.suite";

test("the stand-in of the service treats requests as the service does", async () => {
  const service = new FakeService();
  let conversations = 0;
  await checkDelivery({
    send: async (path, init) => service.take(path, init),
    begin: async () => {
      service.live = true;
      return "turn_0";
    },
    newID: () => `conv_${++conversations}`,
  });
});
