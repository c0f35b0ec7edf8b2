// Entry point of the web app: starts it, and renders App into the element #root.
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { start } from "./start";
import "./style/tokens.css";
import "./style/shell.css";

// The style elements that Radix adds at run time need the CSP nonce of this document.
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce;
if (nonce) setNonce(nonce);

// The text that needs it is rendered later.
void document.fonts.load("1rem Atkinson").catch(() => {});
start();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
