// The pictures of the README: a conversation on a desktop and on a phone. They are kept in tmp/pictures; with PICTURES
// set to a folder, as docs/images, they are kept there.
import { mkdirSync } from "node:fs";
import { describe, test } from "vitest";
import { stop } from "./room";
import { Account, hold, phone, Visit, withBrowser } from "./site";

withBrowser();

const folder = process.env["PICTURES"] ?? new URL("../../tmp/pictures", import.meta.url).pathname;

describe("pictures for the README", () => {
  test("an answer that streams, a message that is queued, answers that were not seen yet", async () => {
    mkdirSync(folder, { recursive: true });
    const account = await Account.register();
    for (const [title, text] of [
      ["Packing list for the coast", "Hello!"],
      ["Names for a boat", "Thanks!"],
    ] as const) {
      const other = await account.chat(text);
      await account.ask("PUT", `/conversations/${other}/title`, { title });
    }
    const conversation = await account.chat("What is (17 + 4) * 2?");
    await account.ask("PUT", `/conversations/${conversation}/title`, { title: "A tour of Turnstone" });
    await account.chat("Write a small function in Go that greets somebody.", { conversation_id: conversation });
    const desk = await Visit.open(`/c/${conversation}`, account, { colorScheme: "light" });
    const pocket = await Visit.open(`/c/${conversation}`, account, { viewport: phone, colorScheme: "dark", isMobile: true, hasTouch: true, deviceScaleFactor: 2 });
    for (const { page } of [desk, pocket]) await page.locator("[data-message]").nth(3).waitFor();
    // Written by hand, so that it is seen at once; the phone is told by the service.
    const box = desk.page.getByRole("textbox", { name: "Message", exact: true });
    const question = "What is Turnstone, and what can I try here?";
    await hold(question);
    await box.fill(question);
    await box.press("Enter");
    await stop(desk.page).waitFor();
    await box.fill("And which of these works on a phone?");
    await box.press("Enter");
    await desk.page.getByText("Next, when this answer is done").waitFor();
    for (const [visit, name] of [[desk, "conversation"], [pocket, "phone"]] as const) {
      await visit.page.reload();
      await visit.page.locator("[data-message]").nth(5).getByText("Turnstone runs conversations").waitFor();
      await visit.page.locator("figure [data-ink]").first().waitFor(); // code has its colours
      await visit.page.screenshot({ path: `${folder}/${name}.png` });
    }
    await desk.close();
    await pocket.close();
  });
});
