// A long conversation, made by an import: turns would take too long.
import { Account } from "./harness";

/** Imports a conversation with these messages, alternately of the user and of the model, and returns its identifier. */
export async function importConversation(account: Account, title: string, texts: readonly string[]): Promise<string> {
  const mapping: Record<string, object> = {
    root: { id: "root", parent: null, children: ["0"], message: null },
  };
  for (const [at, text] of texts.entries())
    mapping[at] = {
      id: String(at),
      parent: at === 0 ? "root" : String(at - 1),
      children: at === texts.length - 1 ? [] : [String(at + 1)],
      message: {
        id: String(at),
        author: { role: at % 2 === 0 ? "user" : "assistant" },
        create_time: 1_764_000_000 + at,
        content: { content_type: "text", parts: [text] },
        metadata: {},
      },
    };
  const conversation = {
    id: title,
    title,
    create_time: 1_764_000_000,
    update_time: 1_764_000_000 + texts.length,
    current_node: String(texts.length - 1),
    mapping,
  };
  await account.request("POST", "/account/imports", [conversation]);
  for (;;) {
    const { data } = await account.read<{ data: { conversation_id: string; title: string }[] }>("/conversations");
    const found = data.find((one) => one.title === title);
    if (found !== undefined) return found.conversation_id;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
