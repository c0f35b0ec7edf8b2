/** Addresses of the built libraries of artifacts; see vite.config.ts. */
declare module "virtual:artifact-runtime" {
  const addresses: Readonly<Record<"react" | "chart" | "d3" | "mermaid" | "katex" | "katexStyles" | "subset", string>>;
  export default addresses;
}
