// Runs artifacts in a frame of the sandbox origin. The frame has no origin of its own: it is sandboxed, loads nothing, and gets the
// content and the libraries that the content names as a message. What it reports is untrusted.
import runtime from "virtual:artifact-runtime";

/** A content to run. A document is HTML that was made of Markdown and sanitized. */
export interface Artifact {
  kind: "document" | "code" | "html" | "svg" | "table" | "diagram";
  content: string;
}

/** What a frame reports; left: the artifact has opened another page in it, which remains empty. */
export type Report = { type: "rendered" | "left" } | { type: "error"; message: string; line: number };

/** The address of the sandbox origin; empty: the service has none. */
export function sandboxOrigin(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="turnstone-content"]')?.content ?? "";
}

/**
 * The attributes of the frame. Without allow-same-origin, its scripts cannot reach the sandbox origin itself. They may take the
 * keyboard focus only after the user has acted in the frame, where browsers have this policy, so that no key that is typed into
 * the composer goes to them.
 */
export const frameAttributes = {
  sandbox: "allow-scripts",
  referrerPolicy: "no-referrer",
  allow: "focus-without-user-activation 'none'",
} as const;

type Library = keyof typeof runtime;

const uses: ReadonlyArray<readonly [Library, RegExp]> = [
  ["react", /\bReact(DOM)?\b/],
  ["chart", /\bChart\b/],
  ["d3", /\bd3\s*\./],
  ["mermaid", /\bmermaid\b/],
  ["katex", /\bkatex\b/],
];

/** The libraries that an artifact uses. */
export function librariesOf({ kind, content }: Artifact): readonly Library[] {
  if (kind === "diagram") return ["mermaid"];
  if (kind !== "html") return [];
  return uses.filter(([, pattern]) => pattern.test(content)).map(([library]) => library);
}

const loaded = new Map<Library, Promise<Blob>>();

function load(library: Library): Promise<Blob> {
  const known = loaded.get(library);
  if (known !== undefined) return known;
  const blob = fetch(runtime[library]).then((response) => {
    if (!response.ok) throw new Error(`${library}: ${response.status}`);
    return response.blob();
  });
  loaded.set(library, blob);
  blob.catch(() => loaded.delete(library));
  return blob;
}

/**
 * Runs an artifact in a frame whose attributes are frameAttributes, and reports until the returned function is called. A frame runs
 * one artifact once: another content, or another attempt, needs a new frame.
 */
export function runArtifact(
  frame: HTMLIFrameElement,
  artifact: Artifact,
  report: (report: Report) => void,
): () => void {
  const origin = sandboxOrigin();
  let sent = false;
  const receive = (event: MessageEvent<unknown>) => {
    // A frame without an origin has the origin "null"; only its window identifies it.
    if (event.source !== frame.contentWindow || event.origin !== "null") return;
    const data = event.data as { source?: unknown; type?: unknown; message?: unknown; line?: unknown } | null;
    if (data?.source !== "turnstone-artifact") return;
    if (data.type === "ready" && !sent) {
      sent = true;
      void send(frame, artifact).catch((reason: unknown) =>
        report({ type: "error", message: String(reason), line: 0 }),
      );
    } else if (data.type === "rendered" || data.type === "left") report({ type: data.type });
    else if (data.type === "error" && typeof data.message === "string")
      report({ type: "error", message: data.message.slice(0, 4000), line: Number(data.line) || 0 });
  };
  addEventListener("message", receive);
  frame.src = `${origin}/`;
  return () => removeEventListener("message", receive);
}

async function send(frame: HTMLIFrameElement, artifact: Artifact): Promise<void> {
  const names = librariesOf(artifact);
  const styles: Library[] = names.includes("katex") ? ["subset", "katexStyles"] : ["subset"];
  const [libraries, sheets] = await Promise.all([
    Promise.all(names.map(load)),
    Promise.all(styles.map(async (name) => (await load(name)).text())),
  ]);
  // The frame has no origin that could be named as the target; the message has nothing but the artifact and public libraries.
  frame.contentWindow?.postMessage({ type: "run", ...artifact, libraries, styles: sheets }, "*");
}
