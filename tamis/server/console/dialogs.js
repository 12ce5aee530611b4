// The two dialogs: for the token, and to confirm what is done to the store.

import { $ } from './dom.js';

export function askForToken(refused) {
  const dialog = $('token-dialog');
  $('token-problem').textContent = refused ? 'The server refused this token.' : '';
  $('token').value = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => dialog.showModal();  // there is nothing without a token
    dialog.querySelector('form').onsubmit = (event) => {
      event.preventDefault();
      dialog.onclose = null;
      dialog.close();
      resolve($('token').value.trim());
    };
  });
}

// True when the person confirms.
export function confirm(heading, text, yes) {
  const dialog = $('confirm-dialog');
  $('confirm-heading').textContent = heading;
  $('confirm-text').textContent = text;
  $('confirm-yes').textContent = yes;
  dialog.showModal();
  // Not by the event "close", which may come when the dialog is open for the next question.
  return new Promise((resolve) => {
    const end = (confirmed) => {
      dialog.close();
      resolve(confirmed);
    };
    $('confirm-no').onclick = () => end(false);
    $('confirm-yes').onclick = () => end(true);
    dialog.oncancel = () => resolve(false);
  });
}
