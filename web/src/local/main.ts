import "../app.css";
