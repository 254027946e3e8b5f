// A form asks the browser for a passkey before it is sent: for a new one, or for one that is known.
const form = document.querySelector("form[data-passkey]");
const trouble = document.querySelector("[data-passkey-trouble]");
const options = JSON.parse(document.getElementById("passkey-options").textContent);

const NONE = "This browser cannot use passkeys here. They need https, or an address that begins with http://localhost.";
const OVER = "No passkey was given. Try again, and confirm on your device before the time is over.";
const THERE = "This device already has a passkey for you here.";

function ask() {
  const known = window.PublicKeyCredential;
  if (!known?.parseCreationOptionsFromJSON || !navigator.credentials) throw new Error(NONE);
  return form.dataset.passkey === "create"
    ? navigator.credentials.create({ publicKey: known.parseCreationOptionsFromJSON(options.creation_options.publicKey) })
    : navigator.credentials.get({ publicKey: known.parseRequestOptionsFromJSON(options.request_options.publicKey) });
}

function told(error) {
  if (error.name === "NotAllowedError" || error.name === "AbortError") return OVER;
  if (error.name === "InvalidStateError") return THERE;
  return error.name === "SecurityError" ? NONE : error.message;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  trouble.hidden = true;
  try {
    const given = await ask();
    form.elements.credential.value = JSON.stringify(given.toJSON());
    form.submit();
  } catch (error) {
    trouble.textContent = told(error);
    trouble.hidden = false;
  }
});
