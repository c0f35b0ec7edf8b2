// Tests of the composer: steering at once, the focus, the shortcut sheet, rate limits, and the list of waiting messages.
import { describe, expect, test } from "vitest";
import { composer, pausedAnswer, waitForAnswerEnd, waitForAnswerText } from "./conversation-page";
import { Account, BrowserWindow, withBrowser } from "./harness";
import { FaultProxy } from "./fault-proxy";

withBrowser();

describe("the connection", () => {
  test("while the server can't be reached, the page doesn't claim that the answer continues", async () => {
    const account = await Account.register();
    const { conversation } = await account.startTurn((await pausedAnswer()).text);
    const network = await FaultProxy.start();
    const visit = await BrowserWindow.open(`/c/${conversation}`, account, { proxy: network.proxy });
    const { page } = visit;
    await waitForAnswerText(page);
    network.cut();
    const banner = page.getByText("Can't reach the server. Nothing you've sent is lost.");
    await banner.waitFor();
    expect(await page.getByText("The answer continues on the server").count()).toBe(0);
    network.restore();
    await banner.waitFor({ state: "hidden", timeout: 30_000 });
    await composer(page).press("Escape");
    await waitForAnswerEnd(page);
    await visit.close();
    await network.close();
  });
});
