// Takes the screenshots of the README: a conversation on a desktop and on a phone. They are written to tmp/pictures, or
// to the folder that PICTURES names, for example docs/images.
import { mkdirSync } from "node:fs";
import { describe, test } from "vitest";
import { stop } from "./conversation-page";
import { Account, hold, phone, BrowserWindow, withBrowser } from "./harness";

withBrowser();

const folder = process.env["PICTURES"] ?? new URL("../../tmp/pictures", import.meta.url).pathname;

describe("screenshots for the README", () => {
  test("a streaming answer, a queued message and unread answers", async () => {
    mkdirSync(folder, { recursive: true });
    const account = await Account.register();
    for (const [title, text] of [
      ["Packing list for the coast", "Hello!"],
      ["Names for a boat", "Thanks!"],
    ] as const) {
      const other = await account.chat(text);
      await account.request("PUT", `/conversations/${other}/title`, { title });
    }
    const conversation = await account.chat("What is (17 + 4) * 2?");
    await account.request("PUT", `/conversations/${conversation}/title`, { title: "A tour of Turnstone" });
    await account.chat("Write a small function in Go that greets somebody.", { conversation_id: conversation });
    const laptop = await BrowserWindow.open(`/c/${conversation}`, account, { colorScheme: "light" });
    const mobile = await BrowserWindow.open(`/c/${conversation}`, account, {
      viewport: phone,
      colorScheme: "dark",
      isMobile: true,
      hasTouch: true,
      deviceScaleFactor: 2,
    });
    for (const { page } of [laptop, mobile]) await page.locator("[data-message]").nth(3).waitFor();
    // Entered in the user interface, so that this page shows it at once; the phone gets it from the service.
    const box = laptop.page.getByRole("textbox", { name: "Message", exact: true });
    const question = "What is Turnstone, and what can I try here?";
    await hold(question);
    await box.fill(question);
    await box.press("Enter");
    await stop(laptop.page).waitFor();
    await box.fill("And which of these works on a phone?");
    await box.press("Enter");
    await laptop.page.getByText("Sends after this answer").waitFor();
    for (const [visit, name] of [
      [laptop, "conversation"],
      [mobile, "phone"],
    ] as const) {
      await visit.page.reload();
      await visit.page.locator("[data-message]").nth(5).getByText("Turnstone runs conversations").waitFor();
      await visit.page.locator("figure [data-ink]").first().waitFor(); // the code is highlighted
      await visit.page.screenshot({ path: `${folder}/${name}.png` });
    }
    await laptop.close();
    await mobile.close();
  });
});
