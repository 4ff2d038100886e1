mod fixtures;
mod laws;
mod saboteurs;
mod score_mods;
mod state;
mod statements;
