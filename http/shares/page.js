for (const time of document.querySelectorAll("time")) {
  const format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
  time.textContent = format.format(new Date(time.dateTime));
}
const { copy, copied } = document.body.dataset;
for (const code of navigator.clipboard ? document.querySelectorAll("pre") : []) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = copy;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = copied;
    setTimeout(() => (button.textContent = copy), 2000);
  });
  const figure = code.closest("figure");
  if (figure?.querySelector("figcaption")) figure.querySelector("figcaption").append(button);
  else code.before(button);
}
