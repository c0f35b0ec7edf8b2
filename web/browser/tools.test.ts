// Tests of the switch for tools in the composer, and of the button that asks for another try of a failed call.
import { expect, test } from "vitest";
import { colourRules, expectAccessibleInBothColorSchemes, expectAccessibleOnDesktopAndPhone } from "./axe";
import { composer, fast, messages, send, stop, waiting, waitForAnswerEnd } from "./conversation-page";
import { Account, BrowserWindow, url, withBrowser } from "./harness";

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
  await page.getByRole("button", { name: "Tools (2 off)" }).press("Enter");
  await item("Search the web").press("Enter");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Tools (1 off)" }).waitFor();
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
  await messages(page).nth(2).getByText("Try calling “Calculate” again.").waitFor();
  await waitForAnswerEnd(page);
  await again.waitFor({ state: "detached" });
  expect(await composer(page).inputValue()).toBe("");
  await visit.close();
});

test("the location is shared with a conversation after a consent, shown with its end, and removed again", async () => {
  const account = await Account.register();
  const conversation = await account.chat(fast(5));
  const visit = await BrowserWindow.open(`/c/${conversation}`, account);
  const { page, context } = visit;
  const consent = async () =>
    (await account.read<{ data: { source: string; granted: boolean }[] }>("/memory-sources")).data.find(
      ({ source }) => source === "location",
    )!.granted;
  const location = () => account.read<object>(`/conversations/${conversation}/location-context`);
  const choose = async (name: string) => {
    await page.getByRole("button", { name: "Tools", exact: true }).press("Enter");
    await page.getByRole("menuitem", { name }).press("Enter");
  };
  const dialog = page.getByRole("dialog", { name: "Share your location with this conversation" });
  await context.grantPermissions([]); // denies what is not in the list
  await context.setGeolocation({ latitude: 53.3671, longitude: 7.2063, accuracy: 40 });
  await choose("Share your location…");
  await dialog.getByText("about a kilometer").waitFor();
  await expectAccessibleOnDesktopAndPhone(page, "the dialog about the location");
  await dialog.getByRole("button", { name: "Allow and share" }).press("Enter");
  await dialog.getByText("Your browser doesn't let this site use your location.").waitFor();
  expect(await consent()).toBe(false);
  await context.grantPermissions(["geolocation"], { origin: url });
  await dialog.getByRole("button", { name: "Allow and share" }).press("Enter");
  await page.getByText(/Your location is shared with this conversation until .+\./).waitFor();
  await dialog.waitFor({ state: "detached" });
  expect(await location()).toMatchObject({ latitude: 53.37, longitude: 7.21, precise: false });
  await choose("Your location is shared Until");
  await dialog.getByRole("button", { name: "Stop sharing" }).press("Enter");
  await page.getByText("Your location was removed from this conversation.").waitFor();
  await expect(location()).rejects.toThrow("404");
  // The consent stays until it is withdrawn in the settings.
  expect(await consent()).toBe(true);
  await visit.follow("/settings#privacy");
  const use = page.getByRole("checkbox", { name: "Use your location" });
  const exact = page.getByRole("checkbox", { name: "Use your exact location" });
  await expect.poll(() => use.isChecked()).toBe(true);
  expect(await exact.isChecked()).toBe(false);
  await use.press("Space");
  await exact.waitFor({ state: "detached" });
  await expect.poll(consent).toBe(false);
  await context.setGeolocation(null);
  await visit.close();
});
