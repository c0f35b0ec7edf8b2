// Prints every message of the app in its languages, side by side, for readers and translators.
import { readdirSync, readFileSync } from "node:fs";

const folder = new URL("src/messages/", import.meta.url);
const languages = ["en", "ar", "ja"];
const cell = (text) => text.replaceAll("|", "\\|").replaceAll("\n", " ");

console.log(`# Messages of the web app

Every text of the app, from \`web/src/messages\`. A message with braces is an ICU message; the build
parses it.`);
for (const file of readdirSync(new URL("en/", folder)).filter((name) => name.endsWith(".json"))) {
  const [english, ...others] = languages.map((language) =>
    JSON.parse(readFileSync(new URL(`${language}/${file}`, folder), "utf8")),
  );
  console.log(`\n## ${file.replace(".json", "")}\n\n| key | English | العربية | 日本語 |\n|---|---|---|---|`);
  for (const [key, text] of Object.entries(english))
    console.log(`| \`${key}\` | ${[text, ...others.map((messages) => messages[key])].map(cell).join(" | ")} |`);
}
