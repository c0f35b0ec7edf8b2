// Tests of the switch for tools in the composer, and of the button that asks for another try of a failed call.
import { expect, test } from "vitest";
import { colourRules, expectAccessibleInBothColorSchemes, expectAccessibleOnDesktopAndPhone } from "./axe";
import { composer, fast, messages, send, stop, waiting, waitForAnswerEnd } from "./conversation-page";
import { Account, BrowserWindow, withBrowser } from "./harness";

withBrowser();

test("tools are switched off for the next messages of a conversation, also after a reload and in the queue", async () => {
  const account = await Account.register();
  const visit = await BrowserWindow.open("/", account);
  const { page } = visit;
  const item = (name: string) => page.getByRole("menuitemcheckbox", { name });
  await page.getByRole("button", { name: "Tools", exact: true }).press("Enter");
  await item("Calculate").waitFor();
  await expectAccessibleInBothColorSchemes(page, "the menu of tools", colourRules);
  await item("Search the web").press("Enter");
  await item("Calculate").press("Enter");
  expect(await item("Calculate").getAttribute("aria-checked")).toBe("false");
  await page.keyboard.press("Escape");
  // A calculation is not offered, so the model answers in words.
  await send(page, "What is (17 + 4) * 2?");
  await waitForAnswerEnd(page);
  await page.waitForURL("**/c/*");
  await messages(page).nth(1).getByRole("button", { name: "Regenerate" }).waitFor();
  expect(await messages(page).getByText("Calculate", { exact: true }).count()).toBe(0);
  await page.reload();
  await page.getByRole("button", { name: "Tools: 2 are off" }).press("Enter");
  await item("Search the web").press("Enter");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Tools: 1 is off" }).waitFor();
  const conversation = new URL(page.url()).pathname.split("/")[2]!;
  await account.startTurn("[[script tokens=5 approval=low:reversible]]", { conversation_id: conversation });
  await stop(page).waitFor();
  await send(page, `Next. ${fast(5)}`);
  await waiting(page).getByText("Next.").waitFor();
  const queued = async () =>
    (await account.read<{ data: { tools: unknown }[] }>(`/conversations/${conversation}/follow-ups`)).data;
  await expect.poll(async () => (await queued()).map(({ tools }) => tools)).toEqual([{ off: ["calculate"] }]);
  await visit.close();
});

test("18 a failed call has a button that asks the model to try it again", async () => {
  const account = await Account.register();
  const conversation = await account.chat("[[script tokens=5 tool=calculate:0:fail]]");
  const visit = await BrowserWindow.open(`/c/${conversation}`, account);
  const { page } = visit;
  const again = page.getByRole("button", { name: "Ask to try again: Calculate" });
  await again.waitFor();
  await expectAccessibleOnDesktopAndPhone(page, "a failed call");
  await again.press("Enter");
  await messages(page).nth(2).getByText("Try the call of “Calculate” again.").waitFor();
  await waitForAnswerEnd(page);
  await again.waitFor({ state: "detached" });
  expect(await composer(page).inputValue()).toBe("");
  await visit.close();
});
