// Deletes the pages and texts that the label screen keeps in this browser for reloads without a
// connection, once somebody else is signed in, or nobody. Labels and drafts that are not sent yet stay.
const PREFIX = "label|";

async function forget(but) {
  const names = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== but);
  await Promise.all(names.map((name) => caches.delete(name)));
}

if (globalThis.caches) {
  const { account } = document.body.dataset;
  forget(account && PREFIX + account).catch(() => {});
  for (const form of document.querySelectorAll("form[data-sign-out]")) {
    form.addEventListener("submit", () => forget());
  }
}
